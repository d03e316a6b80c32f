type Run = (script: string, words: readonly string[]) => Promise<number>;

/** Of everything in web/ that is not made there: the same as long as the dashboard need not be built anew. */
export function hashOfSources(root: string): string;

/** Tells whether the built dashboard differs from the sources. */
export function isStale(root: string): boolean;

/** Builds the dashboard in each of its languages; returns the exit code. */
export function buildWeb(root: string, run: Run): Promise<number>;
