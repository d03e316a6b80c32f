import { LinkTo } from '../../ui/LinkTo.tsx';
import { exactText, moneyText } from '../../ui/Money.tsx';
import { problemText } from './form/problems.ts';
import type { ChatPrice } from './useChatPrice.ts';

/** The hold of a message, before it is sent. */
export function ChatPriceLine({ price }: { price: ChatPrice }) {
  if (price.state === 'none') return null;
  if (price.state === 'large') return <>For files of this size there is no estimate before the call.</>;
  const { estimates } = price;
  const problem = estimates.find((one) => !one.ok);
  if (problem && !problem.ok)
    return <>{problem.errors[0] ? problemText(problem.errors[0]) : 'The message cannot be sent yet.'}</>;
  const fine = estimates.flatMap((one) => (one.ok ? [one] : []));
  const [first] = fine;
  if (!first) return null;
  const obstacle = fine.find((one) => one.obstacle !== null)?.obstacle;
  if (obstacle === 'account_blocked') return <>This account is blocked. Ask the operator of this service.</>;
  return (
    <>
      <span className="figure">Holds {fine.map((one) => exactText(one.estimated_cost)).join(' + ')}</span>, for the
      longest answer. {obstacle === undefined && first.available && <>{moneyText(first.available)} available.</>}
      {obstacle === 'insufficient_balance' && !first.available && (
        <>The account has less: the answer may have to be shorter. Ask an owner of the account.</>
      )}
      {obstacle === 'insufficient_balance' && first.available && (
        <>
          Only {moneyText(first.available)} available: the answer may have to be shorter.{' '}
          <LinkTo href="/billing" underline="always" size="sm">
            Top up
          </LinkTo>
        </>
      )}
      {obstacle === 'spend_limit' && (
        <>
          That is more than the monthly limit of the playground’s key leaves.{' '}
          <LinkTo href="/keys" underline="always" size="sm">
            Change it
          </LinkTo>
        </>
      )}
    </>
  );
}
