"""Reads the progress of share groups (KIP-932) from their coordinators."""
