import { Code } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

type State = 'source' | 'drawn';

/** A formula, or its source while it is drawn, and where it is none. */
export function Formula({ tex, is_block }: { tex: string; is_block: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  const [state, setState] = useState<State>('source');
  useEffect(() => {
    let is_gone = false;
    import('./typeset.ts').then(
      ({ typeset }) => {
        if (!is_gone && place.current) setState(typeset(tex, place.current, is_block) ? 'drawn' : 'source');
      },
      () => undefined,
    );
    return () => {
      is_gone = true;
    };
  }, [tex, is_block]);
  return (
    <>
      <span
        ref={place}
        className={is_block ? 'markdown-formula' : undefined}
        tabIndex={is_block && state === 'drawn' ? 0 : undefined}
        role={is_block ? 'group' : undefined}
        aria-label={is_block ? 'Formula' : undefined}
        hidden={state === 'source'}
      />
      {state === 'source' && <Code>{tex}</Code>}
    </>
  );
}
