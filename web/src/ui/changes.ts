/**
 * Returns the fields of `after` that differ from those of `before`: what was changed in a form. The rest is left out of
 * the request, as somebody else may change it meanwhile.
 */
export function changesIn(before: object, after: object): Record<string, unknown> {
  const fields_before = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(fields_before.get(name))),
  );
}
