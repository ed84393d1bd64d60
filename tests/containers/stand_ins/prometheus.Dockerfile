# The same program as in the official image, from Debian's package or from the module.
FROM localhost/rlm-stand-in-debian
COPY prometheus /bin/prometheus
RUN install --directory --owner=nobody --group=nogroup /prometheus
USER nobody
ENTRYPOINT ["/bin/prometheus"]
