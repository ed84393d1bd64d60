# Prometheus of Debian's package, which is older than the official image, or built from the module.
FROM localhost/rlm-stand-in-debian
COPY prometheus /bin/prometheus
RUN install --directory --owner=nobody --group=nogroup /prometheus
USER nobody
ENTRYPOINT ["/bin/prometheus"]
