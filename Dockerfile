# The API (`start`) or the courier (`courier`) in front of a Supabase project: see docs/operate/containers.md.
FROM node:24-slim

# The data directory holds nothing but ticket e-mails, and only while no mail service is configured.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 USHER_DATA_DIR=/var/lib/usher
WORKDIR /app
RUN install --directory --owner=node --group=node "$USHER_DATA_DIR"

# Not `npm ci`, which refuses a lock file without the optional packages of other platforms. Versions are those of the lock file.
COPY package.json package-lock.json ./
RUN npm install --omit=dev --omit=optional --no-save --no-audit --no-fund && npm cache clean --force

COPY bin bin
COPY src src
# For `doctor`, which compares them with the project's.
COPY supabase/migrations supabase/migrations
# Served at /docs.
COPY docs docs

USER node
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "bin/usher.js"]
CMD ["start"]
