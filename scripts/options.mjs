import { parseArgs } from 'node:util';

/** Reads the options of a program as `parseArgs` has them. Misuse ends the process with 2 and one sentence. */
export function readOptions(options) {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    // Node adds a hint about positional arguments, which the programs do not take.
    const [sentence] = error.message.split(/\.\s/);
    console.error(`${sentence}.`);
    process.exit(2);
  }
}
