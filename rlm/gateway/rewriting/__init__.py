"""Rewrites of requests and responses, API by API. Pure except for calls to their context."""
