import { Fragment } from 'react';

/** An id or a code of several words, which may break between them: left alone, a narrow column breaks it within a word. */
export function Breakable({ text }: { text: string }) {
  return text.split(/(?<=[/#_])/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}
