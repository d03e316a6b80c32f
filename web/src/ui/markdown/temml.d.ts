/** The part of it that is used here. Its own types are not found by its own package.json. */
declare module 'temml' {
  type Options = {
    displayMode: boolean;
    throwOnError: boolean;
    /** False: no links, files or styles out of a formula. */
    trust: boolean;
    maxExpand: number;
    /** In em: of what a formula draws by its size, and of all of it. */
    maxSize: [number, number];
  };

  const temml: {
    /** Throws for what is no formula. */
    render(tex: string, into: HTMLElement, options: Options): void;
  };
  export default temml;
}
