import { SignInForm } from './sign-in-form.tsx';

export function SignInPage({ reason }: { readonly reason: string | null }) {
  return (
    <main class="gate">
      <h1>Headgate</h1>
      {reason !== null && <p role="status">{reason}</p>}
      <SignInForm />
    </main>
  );
}
