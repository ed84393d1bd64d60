"""The configuration file: read once into frozen sections and checked at once.

rlm.config.sections has the sections with their keys, rlm.config.load the whole configuration. This
package does not connect to the cluster or to the store.
"""
