import { lazy, Suspense, useEffect, useState } from 'react';
import { offerProof } from '../proof.ts';
import type { Me } from '../session.tsx';

/** Loaded when somebody is first asked. */
const ProofDialog = lazy(() =>
  import('./ProofDialog.tsx').then(({ ProofDialog: component }) => ({ default: component })),
);

/** The place of the dialog that asks who is there once more. */
export function Proof({ me }: { me: Me }) {
  const [answer, setAnswer] = useState<(is_given: boolean) => void>();
  useEffect(() => offerProof((next) => setAnswer(() => next)), []);
  if (!answer) return null;
  const end = (is_given: boolean) => {
    setAnswer(undefined);
    answer(is_given);
  };
  return (
    <Suspense>
      <ProofDialog me={me} end={end} />
    </Suspense>
  );
}
