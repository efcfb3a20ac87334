# The server with all that it needs, for a machine without Node. See docs/server.md.
FROM node:22-slim AS build
WORKDIR /sluice
COPY . .
# Node 22 has a SQLite of its own: nothing has to be compiled.
RUN npm ci --ignore-scripts && npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-slim
ENV NODE_ENV=production
COPY --from=build --chown=root:root /sluice /sluice
RUN ln -s /sluice/packages/cli/bin/sluice.js /usr/local/bin/sluice && mkdir /data && chown node:node /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 4319
STOPSIGNAL SIGTERM
ENTRYPOINT ["sluice"]
CMD ["serve", "--host", "0.0.0.0", "--flows", "/flows", "--tokens", "/tokens.yaml", "--store", "/data/sluice.db"]
