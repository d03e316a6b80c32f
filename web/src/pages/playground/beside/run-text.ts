/** Returns the tasks of the page by their model. */
export function runsIn(run: string | undefined, models: readonly string[]): Record<string, string> {
  const ids = (run ?? '').split(',');
  return Object.fromEntries(models.flatMap((model, index) => (ids[index] ? [[model, ids[index]]] : [])));
}

/** Returns `run` of the address for these tasks. */
export function runText(runs: Readonly<Record<string, string>>, models: readonly string[]): string | undefined {
  const ids = models.map((model) => runs[model] ?? '').join(',');
  return /^,*$/.test(ids) ? undefined : ids.replace(/,+$/, '');
}
