"""Multipart uploads: part boundaries, senders, and their memory budget; what uploads left."""
