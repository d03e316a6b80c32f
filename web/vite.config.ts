import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Everything comes from the service itself: one page, and files whose names tell their content. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy of the page allows no data: scripts, fonts or styles
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
