import { SignInForm } from './sign-in-form.tsx';

/** Shown to whoever is not signed in, with why where there is a reason. */
export function SignInPage({ reason }: { readonly reason: string | null }) {
  return (
    <main class="gate">
      <h1>Headgate</h1>
      {reason !== null && <p role="status">{reason}</p>}
      <SignInForm />
    </main>
  );
}
