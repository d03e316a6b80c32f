/**
 * `make`, but once for each object, for as long as the object lives: for what follows from parts of the
 * catalogue, which are never changed in place, and is asked for by every call.
 */
export function rememberByObject<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const cache = new WeakMap<Key, Value>();
  return (key) => {
    const value = cache.get(key) ?? make(key);
    cache.set(key, value);
    return value;
  };
}
