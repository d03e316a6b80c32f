/** The keys of a JSON pointer such as `/loras/0/a~1b`. */
export function pointerKeys(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Returns the value under `keys`; undefined if there is none. Never looks at prototypes. */
export function valueAt(root: unknown, keys: readonly string[]): unknown {
  let value = root;
  for (const key of keys) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

/**
 * Returns the value that a pointer in URI form (`#/$defs/a%20b`) names inside `root`; undefined if it is no
 * such pointer.
 */
export function fragmentAt(root: unknown, fragment: string): unknown {
  if (fragment !== '#' && !fragment.startsWith('#/')) return undefined;
  try {
    return valueAt(root, pointerKeys(decodeURIComponent(fragment.slice(1))));
  } catch {
    return undefined; // a lone % sign
  }
}
