import { useEffect, useState } from 'react';
import { useCopying } from '../useCopying.ts';
import type { Piece } from './highlight.ts';

/** Longer code takes long to colour. */
const coloured_max = 50_000;

type Props = { text: string; language: string; /** More of it may come. */ is_open: boolean };

/** Program code of an answer, in colours once it is whole, with a button that copies it. Plain elements: an answer may have a thousand. */
export function CodeBlock({ text, language, is_open }: Props) {
  const pieces = useColours(text, language, is_open);
  const { copied, copy } = useCopying(text);
  const name = language === '' ? 'Code' : language;
  return (
    <div className="markdown-code" role="group" aria-label={language === '' ? 'Code' : `Code in ${language}`}>
      <div>
        <span>{name}</span>
        <button type="button" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      </div>
      <pre tabIndex={0}>
        <code>
          {pieces === undefined
            ? text
            : pieces.map(({ text: piece, colour }, index) =>
                colour === undefined ? (
                  piece
                ) : (
                  <span key={index} className={colour}>
                    {piece}
                  </span>
                ),
              )}
        </code>
      </pre>
    </div>
  );
}

function useColours(text: string, language: string, is_open: boolean): Piece[] | undefined {
  const [coloured, setColoured] = useState<{ of: string; pieces: Piece[] | undefined }>();
  const has_colours = !is_open && language !== '' && text.length <= coloured_max;
  useEffect(() => {
    if (!has_colours) return undefined;
    let is_gone = false;
    import('./highlight.ts').then(
      ({ highlighted }) => !is_gone && setColoured({ of: text, pieces: highlighted(text, language) }),
      () => undefined, // without colours it can be read too
    );
    return () => {
      is_gone = true;
    };
  }, [text, language, has_colours]);
  return has_colours && coloured?.of === text ? coloured.pieces : undefined;
}
