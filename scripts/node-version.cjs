// The first thing that every script reads, in words that Node has understood since version 0.12: with an older Node than
// the scripts need, whatever follows would end in a syntax error or in a function that is missing.
var needed = 20;
var found = Number(process.versions.node.split('.')[0]);

if (found < needed) {
  console.error(
    'Medley needs Node ' +
      needed +
      ' or newer to start, and this is Node ' +
      process.versions.node +
      ' (' +
      process.execPath +
      '). Install a newer one from https://nodejs.org (Medley itself then runs on a Node that npm installs here), and run this command again.',
  );
  process.exit(1);
}
