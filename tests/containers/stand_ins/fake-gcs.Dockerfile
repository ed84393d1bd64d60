# The same program as in the official image, built from the same module.
FROM localhost/rlm-stand-in-debian
COPY fake-gcs-server /bin/fake-gcs-server
ENTRYPOINT ["/bin/fake-gcs-server", "-data", "/data"]
