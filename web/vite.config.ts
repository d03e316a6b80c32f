import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { guide } from './guide/plugin.mjs';
import { languagesIn } from './languages/catalogue.mjs';
import { inLanguage } from './languages/plugin.mjs';

const repository = join(import.meta.dirname, '..');

const web = import.meta.dirname;
const page = join(web, 'index.html');

/**
 * Everything comes from the service itself: the dashboard, which is one page, those of the guide, and files whose names tell their content.
 * `--mode pl` builds the page and its scripts in another language; the guide is there once, in English.
 */
export default defineConfig(({ mode }) => {
  const languages = languagesIn(web);
  const is_translated = languages.includes(mode);
  return {
    root: web,
    define: { languages_built: JSON.stringify(['en', ...languages]) },
    base: './', // the server knows below which path it is, and writes it into the page
    plugins: is_translated ? [inLanguage(web, mode), react()] : [react(), guide(repository)],
    build: {
      outDir: 'dist',
      rolldownOptions: {
        input: is_translated ? [page] : [page, join(web, 'guide.html')],
        // Libraries of every page say nothing to people: their file is the same in all languages, and after an update of Medley.
        output: {
          codeSplitting: {
            groups: [{ name: 'libraries', test: /node_modules.(react|react-dom|scheduler|@tanstack)\b/ }],
          },
        },
      },
      emptyOutDir: true,
      assetsInlineLimit: 0, // the policy of the page allows no data: scripts, fonts or styles
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  };
});
