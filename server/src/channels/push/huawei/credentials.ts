export type HuaweiCredentials = {
  /** Also the id of the OAuth client. */
  appId: string
  secret: string
  projectId?: string | undefined
  /** Lets a tap start the SDK in the app. Without it, a tap opens the app or the message's URL. */
  packageName?: string | undefined
  /** Huawei shows no message without a title. */
  defaultTitle: string
}
