/**
 * Acts at the first click alone. The second one of a double click may be at another row, which has come to stand where the
 * first one was.
 */
export function atFirstClick(act: () => void) {
  return ({ detail }: { detail: number }): void => {
    if (detail <= 1) act();
  };
}
