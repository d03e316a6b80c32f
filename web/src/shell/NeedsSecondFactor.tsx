import { Page } from '../ui/Page.tsx';
import { ButtonTo } from '../ui/LinkTo.tsx';
import { Empty } from '../ui/states.tsx';

/** Stands in place of the pages that open after a second factor only. */
export function NeedsSecondFactor({ who }: { who: string }) {
  return (
    <Page title="A second factor first">
      <Empty
        title={`${who} for a second factor`}
        action={<ButtonTo href="/settings?tab=security">Turn it on</ButtonTo>}
      >
        An authenticator app on your phone shows a code, which you give when you sign in. It takes a minute. Your other
        accounts are open meanwhile.
      </Empty>
    </Page>
  );
}
