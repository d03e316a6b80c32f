/**
 * Some acts ask who is there once more. Whoever is here is asked in a dialog, and the act goes on by itself; this file
 * connects the two.
 */

type Answer = (is_given: boolean) => void;

/** `passkey`: nothing else will do. */
export type ProofKind = 'any' | 'passkey';

type Dialog = (answer: Answer, kind: ProofKind) => void;

let show: Dialog | undefined;
let asking: Promise<boolean> | undefined;
let giveUp: (() => void) | undefined;

/** The dialog says that it is there. Returns what takes that back: whoever is being asked then has given no proof. */
export function offerProof(dialog: Dialog): () => void {
  show = dialog;
  return () => {
    if (show !== dialog) return;
    show = undefined;
    giveUp?.();
  };
}

/** Asks for a proof, once for all acts that wait for it. False if it was not given, or nobody can be asked. */
export function askForProof(kind: ProofKind): Promise<boolean> {
  const dialog = show;
  if (!dialog) return Promise.resolve(false);
  asking ??= new Promise<boolean>((answer) => {
    giveUp = () => answer(false);
    dialog(answer, kind);
  }).finally(() => (asking = undefined));
  return asking;
}
