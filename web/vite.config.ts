import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { guide } from './guide/plugin.mjs';

const repository = join(import.meta.dirname, '..');

/** Everything comes from the service itself: the dashboard, which is one page, those of the guide, and files whose names tell their content. */
export default defineConfig({
  root: import.meta.dirname,
  base: './', // the server knows below which path it is, and writes it into the page
  plugins: [react(), guide(repository)],
  build: {
    outDir: 'dist',
    rolldownOptions: {
      input: [join(import.meta.dirname, 'index.html'), join(import.meta.dirname, 'guide.html')],
    },
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy of the page allows no data: scripts, fonts or styles
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The frame of every page with React, the router and the controls is one file of 514 kB, 153 KiB on the wire. Split,
    // it would still be loaded whole, and only whoever starts the service would be told of it.
    chunkSizeWarningLimit: 600,
  },
});
