import { createTheme, Modal, Notification, TableTd, TableTr, type MantineColorsTuple } from '@mantine/core';

/** Ten steps of one blue; step 6 has a contrast of 5.3 on white, step 4 one of 6.5 on the dark background. */
const brand: MantineColorsTuple = [
  '#eef0fd',
  '#dcdff7',
  '#b6bcef',
  '#8f99e8',
  '#929df0',
  '#5b6cdc',
  '#4c5fd5',
  '#3d4fbd',
  '#3546a9',
  '#2a3b95',
];

/** Greys of the dark scheme, a little blue as its surfaces are; the words of step 0 have a contrast of 11 on step 6. */
const dark: MantineColorsTuple = [
  '#d5d8de',
  '#b8bdc6',
  '#8f96a1',
  '#646b76',
  '#3d424c',
  '#31363f',
  '#272b33',
  '#1e2127',
  '#181a1f',
  '#121418',
];

export const theme = createTheme({
  colors: { brand, dark },
  primaryColor: 'brand',
  primaryShade: { light: 6, dark: 5 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  defaultRadius: 'md',
  cursorType: 'pointer',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: '650',
    sizes: { h1: { fontSize: '1.6rem' }, h2: { fontSize: '1.15rem' }, h3: { fontSize: '1rem' } },
  },
  components: {
    // The page has one banner, and this is not it.
    ModalHeader: { defaultProps: { component: 'div' } },
    Modal: Modal.extend({
      defaultProps: { centered: true, closeButtonProps: { 'aria-label': 'Close' } },
      styles: { title: { fontWeight: 650, lineHeight: 1.35, overflowWrap: 'anywhere' } },
    }),
    // On a phone rows and cells are laid out as cards (theme.css); some browsers then take them for plain boxes.
    TableTr: TableTr.extend({ defaultProps: { role: 'row' } }),
    TableTd: TableTd.extend({ defaultProps: { role: 'cell' } }),
    Notification: Notification.extend({ defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } }),
  },
});
