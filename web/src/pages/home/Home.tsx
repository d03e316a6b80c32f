import { Page } from '../../ui/Page.tsx';

export function Home() {
  return <Page title="Home">…</Page>;
}
