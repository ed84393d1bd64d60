"""Reads the configuration file once into frozen sections, and checks all of it.

rlm.config.sections has the sections with their keys, rlm.config.load the whole configuration. This
package does not connect to the cluster or to the store.
"""
