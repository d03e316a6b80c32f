/** The parts of an answer in Markdown: only these can be shown, so nothing else of an answer can reach the page. */

export type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'emphasis' | 'deleted'; parts: Inline[] }
  | { kind: 'break' }
  /** `href` is checked: http, https or mailto. */
  | { kind: 'link'; href: string; parts: Inline[] }
  /** An image that came with the answer, as a data URL. */
  | { kind: 'image'; src: string; text: string }
  | { kind: 'formula'; tex: string; is_block: boolean };

export type Block =
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'paragraph'; parts: Inline[] }
  | { kind: 'code'; text: string; language: string }
  | { kind: 'formula'; tex: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; start: number | undefined; items: ListItem[] }
  | { kind: 'table'; align: Align[]; header: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

/** `start` of a list is undefined where it has no numbers; `checked` where an item has no box. */
export type ListItem = { checked: boolean | undefined; blocks: Block[] };

export type Align = 'left' | 'center' | 'right' | undefined;
