# The program names of the official Python image, by Debian's packages.
FROM localhost/rlm-stand-in-debian
RUN apt-get update \
    && apt-get install --yes -qq --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && ln -s /usr/bin/python3 /usr/local/bin/python3 \
    && ln -s /usr/bin/python3 /usr/local/bin/python
CMD ["python3"]
