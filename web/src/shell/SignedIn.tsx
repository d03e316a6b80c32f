import { Center, Container, Loader } from '@mantine/core';
import { Navigate, useRouterState } from '@tanstack/react-router';
import { PlaceProvider, useMe } from '../session.tsx';
import { Empty, Failed } from '../ui/states.tsx';
import { AppFrame } from './AppFrame.tsx';

/** Leads to the sign-in page, and back to where one wanted to go. */
export function SignedIn() {
  const me = useMe();
  const wanted = useRouterState({ select: (state) => state.location.href });
  if (me.isError) {
    return (
      <Container size="sm" py="xl" component="main">
        <Failed error={me.error} retry={() => void me.refetch()} />
      </Container>
    );
  }
  if (me.data === undefined) {
    return (
      <Center h="100vh" role="status" aria-label="Loading">
        <Loader />
      </Center>
    );
  }
  if (me.data === null) return <Navigate to="/sign-in" search={wanted === '/' ? {} : { next: wanted }} replace />;
  return (
    <PlaceProvider me={me.data} empty={<NoAccount />}>
      <AppFrame />
    </PlaceProvider>
  );
}

function NoAccount() {
  return (
    <Container size="sm" py="xl" component="main">
      <Empty title="You belong to no account">Ask an owner of an account for an invitation.</Empty>
    </Container>
  );
}
