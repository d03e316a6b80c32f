// npm pack, npm publish: refused here. The repository has sources, which Node does not read below node_modules.
console.error('Medley is packed by npm run package, which builds what the package has: docs/publish.md.');
process.exitCode = 1;
