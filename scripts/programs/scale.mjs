// npm run scale: `npm run bench scale` by a name of its own.
process.argv.splice(2, 0, 'scale');
await import('./bench.mjs');
