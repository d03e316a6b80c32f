import { Page } from '../ui/Page.tsx';
import { ButtonTo } from '../ui/LinkTo.tsx';
import { Empty } from '../ui/states.tsx';

/** Page for an operator who is a member of no account: the pages of accounts have nothing to show. */
export function WithoutAccount() {
  return (
    <Page title="No account">
      <Empty
        title="You belong to no account"
        action={
          <ButtonTo href="/admin" color="orange">
            Go to the operator's pages
          </ButtonTo>
        }
      >
        You run this service. To use it as well, ask an owner of an account for an invitation, or view an account from
        its page in the list of accounts.
      </Empty>
    </Page>
  );
}
