/**
 * Some acts ask who is there once more. Whoever is here is asked in a dialog, and the act goes on by itself; this file
 * connects the two.
 */

type Answer = (is_given: boolean) => void;

let show: ((answer: Answer) => void) | undefined;
let asking: Promise<boolean> | undefined;

/** The dialog says that it is there. Returns what takes that back. */
export function offerProof(dialog: (answer: Answer) => void): () => void {
  show = dialog;
  return () => {
    if (show === dialog) show = undefined;
  };
}

/** Asks for a proof, once for all acts that wait for it. False if it was not given, or nobody can be asked. */
export function askForProof(): Promise<boolean> {
  if (!show) return Promise.resolve(false);
  asking ??= new Promise<boolean>(show).finally(() => (asking = undefined));
  return asking;
}
