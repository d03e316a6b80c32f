import { Center, Container, Loader } from '@mantine/core';
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';
import { below, own_path } from '../below.ts';
import { SessionProvider, useMe } from '../session.tsx';
import { endOthersChoice, language, languages, showAsChosen } from '../ui/language.ts';
import { Empty, Failed } from '../ui/states.tsx';
import { AppFrame } from './AppFrame.tsx';
import { Proof } from './Proof.tsx';

/** Leads to the sign-in page, and back to where one wanted to go. */
export function SignedIn() {
  const me = useMe();
  const own = me.data?.user.language;
  useEffect(() => {
    if (own === null) endOthersChoice();
    else if (own !== undefined && own !== language && languages.includes(own)) showAsChosen(own);
  }, [own]);
  // Who is there stays there: their page may hold a draft, or a secret that is shown once.
  if (me.isError && !me.data) {
    return (
      <Container size="sm" py="xl" component="main">
        <Failed error={me.error} retry={() => void me.refetch()} />
      </Container>
    );
  }
  if (me.data === undefined) return <Waiting />;
  if (me.data === null) return me.isFetching ? <Waiting /> : <ToSignIn />;
  if (me.data.accounts.length === 0 && !me.data.user.is_operator) return <NoAccount />;
  return (
    <SessionProvider me={me.data}>
      <AppFrame />
      <Proof key={me.data.user.id} me={me.data} />
    </SessionProvider>
  );
}

function Waiting() {
  return (
    <Center h="100vh" role="status" aria-label="Loading">
      <Loader />
    </Center>
  );
}

/** Once: where one wanted to go is read before the address changes, or it would grow with every look at it. */
function ToSignIn() {
  const { history } = useRouter();
  useEffect(() => {
    const page = location.pathname.slice(own_path.length) || '/';
    if (page === '/sign-in') return;
    const next = page === '/' ? '' : `?next=${encodeURIComponent(page + location.search + location.hash)}`;
    history.replace(below(`/sign-in${next}`));
  }, [history]);
  return <Waiting />;
}

function NoAccount() {
  return (
    <Container size="sm" py="xl" component="main">
      <Empty title="You belong to no account">Ask an owner of an account for an invitation.</Empty>
    </Container>
  );
}
