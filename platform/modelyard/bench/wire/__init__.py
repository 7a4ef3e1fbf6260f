"""What goes over the wire for each route, of this platform and of its peers."""
