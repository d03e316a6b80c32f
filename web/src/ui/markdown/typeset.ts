import temml from 'temml';
import 'temml/dist/Temml-Local.css';

/** Draws a formula, as MathML: a screen reader reads it, and no fonts have to be loaded. False if it is none. */
export function typeset(tex: string, into: HTMLElement, is_block: boolean): boolean {
  try {
    temml.render(tex, into, {
      displayMode: is_block,
      throwOnError: true,
      trust: false,
      maxExpand: 300,
      maxSize: [20, 400],
    });
    return true;
  } catch {
    return false;
  }
}
