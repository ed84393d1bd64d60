# The program of the official image, from the same npm package.
FROM localhost/rlm-stand-in-debian
RUN apt-get update \
    && apt-get install --yes -qq --no-install-recommends nodejs \
    && rm -rf /var/lib/apt/lists/*
COPY node_modules /opt/azurite/node_modules/
RUN ln -s /opt/azurite/node_modules/.bin/azurite-blob /usr/local/bin/azurite-blob
EXPOSE 10000
CMD ["azurite-blob", "--blobHost", "0.0.0.0"]
