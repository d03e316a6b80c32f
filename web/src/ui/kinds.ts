const media_kinds: readonly string[] = ['image', 'video', 'audio'];

/** Tells whether the playground can run models of this kind. Vectors are numbers: there is nothing to look at. */
export function isInPlayground(kind: string): boolean {
  return kind !== 'embedding';
}

/** Tells whether models of this kind run as tasks. The others answer in the call itself. */
export function isMedia(kind: string): boolean {
  return media_kinds.includes(kind);
}
