import type { TestApp } from './app.ts';

/** Returns the environment of a node of its own (node-child.ts) on the database and the files of a test's service. */
export function childEnvironment(
  { config }: Pick<TestApp['app'], 'config'>,
  more: {
    role: 'api' | 'worker';
    failpoints?: string;
    /** The time at which a failpoint kills the process, if not the first: `batch.answered 8`. */
    kill_at?: string;
    port?: number;
  },
): Record<string, string | undefined> {
  return {
    PATH: process.env['PATH'],
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], // for the first file too: 50 ms of a core
    TEST_UPSTREAM_KEY: process.env['TEST_UPSTREAM_KEY'],
    DATABASE_URL: config.database_url,
    MEDLEY_DATA: config.data_dir,
    MEDLEY_CONFIG: config.config_file,
    MEDLEY_ROLE: more.role,
    ...(more.failpoints !== undefined && { MEDLEY_FAILPOINTS: more.failpoints }),
    ...(more.kill_at !== undefined && { TEST_KILL_AT: more.kill_at }),
    HOST: '127.0.0.1',
    PORT: String(more.port ?? 0),
  };
}
