import { registerHooks } from 'node:module';

/** Told to Node by `--import`: at its end the process tells, as the last line of stderr, what it has loaded. */
const urls = new Set<string>();
registerHooks({
  load: (url, context, next) => {
    urls.add(url);
    return next(url, context);
  },
});
process.on('exit', () => process.stderr.write(`\n${JSON.stringify([...urls])}`));
