# The same program as in the official image, built from the same module.
FROM localhost/rlm-stand-in-debian
COPY versitygw /usr/local/bin/versitygw
ENTRYPOINT ["/usr/local/bin/versitygw"]
