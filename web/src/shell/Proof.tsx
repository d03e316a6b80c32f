import { lazy, Suspense, useEffect, useState } from 'react';
import { offerProof, type ProofKind } from '../proof.ts';
import type { Me } from '../session.tsx';

/** Loaded when somebody is first asked. */
const ProofDialog = lazy(() =>
  import('./ProofDialog.tsx').then(({ ProofDialog: component }) => ({ default: component })),
);

/** The place of the dialog that asks who is there once more. */
export function Proof({ me }: { me: Me }) {
  const [question, setQuestion] = useState<{ answer: (is_given: boolean) => void; kind: ProofKind }>();
  useEffect(() => offerProof((answer, kind) => setQuestion({ answer, kind })), []);
  if (!question) return null;
  const { answer, kind } = question;
  const end = (is_given: boolean) => {
    setQuestion(undefined);
    answer(is_given);
  };
  return (
    <Suspense>
      <ProofDialog me={me} kind={kind} end={end} />
    </Suspense>
  );
}
