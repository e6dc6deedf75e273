"""Where clients come in: over HTTP and over standard streams."""
