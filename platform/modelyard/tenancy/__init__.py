"""Who is calling: keys become a signed claim once, at the edge."""
