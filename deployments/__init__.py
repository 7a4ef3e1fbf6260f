"""Ray Serve shells, one a file: they wire policy to Ray and hold none of their own."""
